// A client of a served model, as Go programs are written: the URL and the body of the request are its arguments.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
)

func main() {
	answer, err := http.Post(os.Args[1], "application/json", strings.NewReader(os.Args[2]))
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		log.Fatal(answer.Status, err, string(body))
	}
	fmt.Println(string(body))
}
