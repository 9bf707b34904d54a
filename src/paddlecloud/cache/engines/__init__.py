"""Where a set's data really lies: `local` (a folder) or `juicefs` (a mount), behind one interface (`base`)."""
