# Writes the folder CONTEXT for the build of the recipe NAME, on the published image of Paddle that BASE tags, if any, and
# the tag of the new image to TAG_FILE.
# The tag ends with six digits of the content: the same recipe has the same tag, and another recipe another one.
set -eu
set -- "$NAME" --to "$CONTEXT"
if [ -n "${BASE:-}" ]; then set -- "$@" --base "paddlepaddle/paddle:$BASE"; fi
python -m paddlecloud.cli.main image dockerfile "$@"
cd "$CONTEXT"
content=$(find . -type f -exec sha256sum {} + | sort | sha256sum | cut -c1-6)
echo "$TAG-$content" > "$TAG_FILE"
