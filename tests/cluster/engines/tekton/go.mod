// Tekton's Pipelines and Triggers, built from their published modules. They share too few versions with the other engines.
module paddlecloud.test/tekton

go 1.26.4

require (
	github.com/tektoncd/pipeline v1.15.0
	github.com/tektoncd/triggers v0.37.0
)
