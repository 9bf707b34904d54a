"""What is refused when an object of Argo is written: `admission.judge` is the policy, the other files are its parts."""
