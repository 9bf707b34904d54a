"""What users do, written once and played on the embedded platform and on a real cluster."""
