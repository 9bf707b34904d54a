// oracle answers, for each line {"expression": …, "variables": {…}} of its input, what Argo's expressions give.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/argoproj/argo-workflows/v3/util/expr/env"
	"github.com/argoproj/argo-workflows/v3/util/template"
	"github.com/expr-lang/expr"
)

type request struct {
	Expression string
	Template   string
	Variables  map[string]any
	Lenient    bool
}

func answer(q request) (out map[string]any) {
	out = map[string]any{}
	defer func() {
		if r := recover(); r != nil {
			out = map[string]any{"error": fmt.Sprint(r)}
		}
	}()
	if q.Template != "" {
		value, err := template.Replace(q.Template, q.Variables, q.Lenient)
		if err != nil {
			return map[string]any{"error": err.Error()}
		}
		return map[string]any{"value": value}
	}
	vars := env.GetFuncMap(q.Variables)
	program, err := expr.Compile(q.Expression, expr.Env(vars))
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	value, err := expr.Run(program, vars)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"value": value, "shown": fmt.Sprintf("%v", value)}
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<24)
	for in.Scan() {
		var q request
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			panic(err)
		}
		line, err := json.Marshal(answer(q))
		if err != nil {
			line, _ = json.Marshal(map[string]any{"error": "marshal: " + err.Error()})
		}
		fmt.Println(string(line))
	}
}
