# The names to push as, from TARGET and the tag in TAG_FILE; the full one goes to URL_FILE.
set -eu
TAG=$(cat "$TAG_FILE")
IMAGE="$TARGET:$TAG"
TAGS="$TARGET:${TAG%-*}-latest"
printf %s "$IMAGE" > "$URL_FILE"
