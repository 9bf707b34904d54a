// Command generate writes the Go code of protocol buffers whose descriptors lie in files, as protoc would with
// protoc-gen-go, for packages below github.com/kubeflow/pipelines:
//
//	generate FOLDER DESCRIPTOR...
//
// What the descriptors import is among them, or is linked into this program.
package main

import (
	"log"
	"os"
	"path/filepath"
	"strings"

	_ "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/pluginpb"
)

const prefix = "github.com/kubeflow/pipelines/"

func main() {
	log.SetFlags(0)
	request := &pluginpb.CodeGeneratorRequest{}
	for _, file := range os.Args[2:] {
		given := &descriptorpb.FileDescriptorProto{}
		must(proto.Unmarshal(read(file), given))
		request.FileToGenerate = append(request.FileToGenerate, given.GetName())
		for _, name := range given.Dependency {
			addLinked(request, name)
		}
		request.ProtoFile = append(request.ProtoFile, given)
	}
	plugin, err := protogen.Options{}.New(request)
	must(err)
	for _, file := range plugin.Files {
		if file.Generate {
			internal_gengo.GenerateFile(plugin, file)
		}
	}
	response := plugin.Response()
	if response.Error != nil {
		log.Fatal(response.GetError())
	}
	for _, file := range response.File {
		place := filepath.Join(os.Args[1], strings.TrimPrefix(file.GetName(), prefix))
		must(os.MkdirAll(filepath.Dir(place), 0o755))
		must(os.WriteFile(place, []byte(file.GetContent()), 0o644))
	}
}

// addLinked adds a file that is linked into this program, after what it imports.
func addLinked(request *pluginpb.CodeGeneratorRequest, name string) {
	for _, there := range request.ProtoFile {
		if there.GetName() == name {
			return
		}
	}
	found, err := protoregistry.GlobalFiles.FindFileByPath(name)
	must(err)
	linked := protodesc.ToFileDescriptorProto(found)
	for _, imported := range linked.Dependency {
		addLinked(request, imported)
	}
	request.ProtoFile = append(request.ProtoFile, linked)
}

func read(file string) []byte {
	content, err := os.ReadFile(file)
	must(err)
	return content
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
