# Deletes the runs of each of SUITES but the newest KEEP; pods and logs go with them.
set -eu
pdc() { python -m paddlecloud.cli.main "$@"; }
for suite in $SUITES; do
  pdc get pipelineruns.tekton.dev -l "$LABEL=$suite" --sort-by .metadata.creationTimestamp -o name | head -n "-$KEEP" |
    while read -r name; do pdc delete "$name" -y --wait=false; done
done
