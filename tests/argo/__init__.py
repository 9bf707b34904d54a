"""Argo's own verdict on what workflows mean here.

`oracle/` is a small Go program around Argo's packages: it evaluates expressions and substitutes tags as the real
controller does. `expressions` makes cases from a seed; `recorded.jsonl` keeps the oracle's verdicts, for machines
without Go: `python -m argo.record` (in tests/) writes it anew.
"""
