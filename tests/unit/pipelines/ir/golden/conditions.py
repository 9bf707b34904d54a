"""If, Elif, Else and what one of them gave."""

from kfp import dsl

python = dsl.component(base_image="paddlecloud/kfp:2", install_kfp_package=False)


@python
def size(n: int) -> int:
    return n


@python
def say(text: str) -> str:
    return text


@python
def write(text: str, data: dsl.Output[dsl.Artifact]):
    with open(data.path, "w") as file:
        file.write(text)


@python
def read(data: dsl.Input[dsl.Artifact]) -> str:
    return open(data.path).read()


@dsl.pipeline(name="conditions")
def pipeline(n: int = 5, name: str = "x") -> str:
    measured = size(n=n)
    with dsl.If(measured.output > 10):
        big = say(text="big")
        big_file = write(text="big file")
    with dsl.Elif(measured.output > 3):
        middle = say(text="middle")
        middle_file = write(text="middle file")
    with dsl.Else():
        small = say(text="small")
        small_file = write(text="small file")
    word = dsl.OneOf(big.output, middle.output, small.output)
    file = dsl.OneOf(big_file.outputs["data"], middle_file.outputs["data"], small_file.outputs["data"])
    last = say(text=word)
    read(data=file)
    with dsl.If(name == "x"):
        say(text="named x")
    with dsl.If(name != "x"):
        say(text="other")
    return last.output
