"""The expression language of Argo's templates, `{{=…}}`: expr-lang (its docs/language-definition.md).

Expressions come from tenants and are evaluated in the control plane. Their length, depth and number of nodes are
bounded when they are parsed (`parser`), and what they may do and build when they are evaluated (`evaluation`).
"""
