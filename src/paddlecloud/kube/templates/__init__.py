"""Go's templates and JSONPath on objects: what `-o go-template=`, `-o jsonpath=` and printer columns print."""
