# Builds the folder CONTEXT with its Dockerfile and pushes it as IMAGE and the names of TAGS; writes the digest to DIGEST.
# A pod that runs this needs no privileges: RUN is done in a chroot, and layers are plain folders.
# Values come as variables, never as text of this script. It is sh, because images of builders have no more.
set -eu
export BUILDAH_ISOLATION="${BUILDAH_ISOLATION:-chroot}" STORAGE_DRIVER="${STORAGE_DRIVER:-vfs}"
verify="--tls-verify=${TLS_VERIFY:-true}"
set -- --layers=false --format oci "$verify" --file "$CONTEXT/Dockerfile"
if [ -n "${PIP_INDEX_URL:-}" ]; then
  set -- "$@" --build-arg "PIP_INDEX_URL=$PIP_INDEX_URL" --build-arg "PIP_TRUSTED_HOST=${PIP_TRUSTED_HOST:-}"
fi
if [ -n "${PLATFORMS:-}" ]; then
  buildah build --platform "$PLATFORMS" --manifest "$IMAGE" "$@" "$CONTEXT"
  push() { buildah manifest push --all "$@"; }
else
  buildah build --tag "$IMAGE" "$@" "$CONTEXT"
  push() { buildah push "$@"; }
fi
# The digest is that of the first push: the others push the same layers under more names.
push "$verify" --digestfile "$DIGEST" "$IMAGE" "docker://$IMAGE"
for tag in ${TAGS:-}; do
  push "$verify" "$IMAGE" "docker://$tag"
done
echo "pushed $IMAGE@$(cat "$DIGEST")"
