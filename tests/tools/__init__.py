"""Programs that tests need and a bare machine may lack: found on PATH, or built once and kept outside the clone."""
