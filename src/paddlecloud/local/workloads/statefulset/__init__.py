"""StatefulSets: pods with numbers, names and volumes of their own, made, updated and removed in order."""
