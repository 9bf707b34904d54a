"""Every parser that reads what a stranger sent, and inputs made to be slow: one row for each pair.

`covers` names the place where such input comes in: a route, a media type, a query option. `test_budgets` knows which
places there are, and fails for one without a row.
"""

from __future__ import annotations

from unit.budgets import apiserver_rows, gateway_rows, modelhub_rows, other_rows, pipelines_rows, serving_rows, ui_rows

ROWS = [
    *gateway_rows.gateway(),
    *apiserver_rows.apiserver(),
    *serving_rows.serving(),
    *pipelines_rows.pipelines(),
    *modelhub_rows.modelhub(),
    *ui_rows.ui(),
    *other_rows.others(),
]
