// Package sqlite3 stands for the driver of that name, which needs a C compiler. The backend of Kubeflow Pipelines names two
// of its words; it opens SQLite in its own unit tests only.
package sqlite3

type ErrNo int

const ErrConstraint ErrNo = 19

type Error struct{ Code ErrNo }

func (Error) Error() string { return "there is no SQLite in this build" }
