"""What the images of Paddle's model suites share: a suite's own engine is run after a check of its arguments.

`compat` holds what code of 2022 needs on the Paddle of these images, `config_keys` refuses keys that a suite would
take without a word, `progress` reports to the job.
"""
