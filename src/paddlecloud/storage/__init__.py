"""Where data comes from: addresses, credentials and object stores. Used by what runs inside pods."""
