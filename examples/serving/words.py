"""Cutting Chinese text into words: a network that marks where each word begins and ends.

The manual's LAC example does it with a model that cannot be had offline. This one learns from sentences put together
from the word list below; words it has never seen it cuts by guess.
"""

import numpy as np
import paddle
from paddle import nn

LEXICON = """
我 你 他 她 我们 你们 他们 的 了 在 是 有 和 与 也 都 很 不 爱 喜欢 去 来 看 吃 喝 学习 工作 研究 使用 训练 部署 推理
北京 上海 广州 深圳 中国 天安门 长城 大学 学生 老师 朋友 家人 孩子 公司 城市 世界 今天 明天 昨天 早上 晚上 现在 时间
飞桨 深度 模型 数据 机器 语言 图像 识别 服务 平台 云上 计算 分布式 参数 服务器 神经网络 人工智能 开源 框架 代码 程序
苹果 米饭 面条 水果 茶 咖啡 牛奶 音乐 电影 书 手机 电脑 汽车 火车 飞机 天气 春天 夏天 秋天 冬天 太阳 月亮 星星 大海
一 二 三 十 百 个 本 天 年 月 好 大 小 高 新 快乐 美丽 可以 应该 需要 希望 觉得 知道 开始 结束 发展 技术 科学 社会 经济
"""
WORDS = tuple(LEXICON.split())
CHARACTERS = sorted(set("".join(WORDS)))
INDEX = {character: number for number, character in enumerate(CHARACTERS, start=2)}
PADDING, UNKNOWN = 0, 1
SINGLE, BEGIN, MIDDLE, END = range(4)


def encode(text, length):
    return [INDEX.get(character, UNKNOWN) for character in text[:length]] + [PADDING] * (length - len(text[:length]))


def marks(words):
    for word in words:
        yield from [SINGLE] if len(word) == 1 else [BEGIN, *[MIDDLE] * (len(word) - 2), END]


def generate(count, seed, length=24):
    rng = np.random.RandomState(seed)
    texts, labels = [], []
    for _ in range(count):
        words = []
        while len("".join(words)) < rng.randint(4, length):
            words.append(WORDS[rng.randint(len(WORDS))])
        label = list(marks(words))[:length]
        texts.append(encode("".join(words), length))
        labels.append(label + [-1] * (length - len(label)))
    return np.array(texts, "int64"), np.array(labels, "int64")


class Network(nn.Layer):
    """Characters [batch, length] to a score for each of the four marks."""

    def __init__(self, width=24):
        super().__init__()
        self.characters = nn.Embedding(len(CHARACTERS) + 2, width)
        self.near = nn.Conv1D(width, width, 3, padding=1)
        self.wide = nn.Conv1D(width, width, 5, padding=2)
        self.head = nn.Linear(width, 4)

    def forward(self, words):
        x = self.characters(words).transpose([0, 2, 1])
        x = x + nn.functional.relu(self.near(x))
        x = x + nn.functional.relu(self.wide(x))
        return self.head(x.transpose([0, 2, 1]))


def train(steps=400, batch=64):
    paddle.seed(0)
    network = Network()
    optimizer = paddle.optimizer.Adam(5e-3, parameters=network.parameters())
    for step in range(steps):
        texts, labels = (paddle.to_tensor(part) for part in generate(batch, seed=step))
        loss = nn.functional.cross_entropy(network(texts), labels, ignore_index=-1)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    network.eval()
    texts, labels = generate(200, seed=10_000)
    found, known = network(paddle.to_tensor(texts)).numpy().argmax(-1), labels >= 0
    return network, float((found == labels)[known].mean())


def export(folder):
    network, accuracy = train()
    paddle.jit.save(
        network, f"{folder}/inference", input_spec=[paddle.static.InputSpec([None, None], "int64", "words")]
    )
    with open(f"{folder}/characters.txt", "w") as file:
        file.write("".join(CHARACTERS))
    return accuracy


# mypy: ignore-errors
