package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
)

// markers is what the comment above a field says to the generators of Kubernetes.
type markers struct {
	optional     bool
	required     bool
	defaultValue json.RawMessage
}

// readMarkers reads the sources of packages; the answer is by "Type.Field", in Go's names.
func readMarkers(packages ...string) (map[string]markers, error) {
	found := map[string]markers{}
	for _, name := range packages {
		directory, err := exec.Command("go", "list", "-f", "{{.Dir}}", name).Output()
		if err != nil {
			return nil, err
		}
		if err := readPackage(strings.TrimSpace(string(directory)), found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func readPackage(directory string, found map[string]markers) error {
	paths, err := filepath.Glob(filepath.Join(directory, "*types.go"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if declared, ok := node.(*ast.TypeSpec); ok {
				readStruct(declared, found)
			}
			return true
		})
	}
	return nil
}

func readStruct(declared *ast.TypeSpec, found map[string]markers) {
	structure, ok := declared.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, goField := range structure.Fields.List {
		for _, name := range goField.Names {
			found[declared.Name.Name+"."+name.Name] = fieldMarkers(goField.Doc)
		}
	}
}

func fieldMarkers(comment *ast.CommentGroup) markers {
	var found markers
	if comment == nil {
		return found
	}
	for _, line := range comment.List {
		marker := strings.TrimSpace(strings.TrimPrefix(line.Text, "//"))
		switch value, isDefault := strings.CutPrefix(marker, "+default="); {
		case marker == "+optional" || marker == "+k8s:optional":
			found.optional = true
		case marker == "+required" || marker == "+k8s:required":
			found.required = true
		// A default that refers to a constant, ref(X), is no JSON; schemas do not carry it.
		case isDefault && json.Valid([]byte(value)):
			found.defaultValue = json.RawMessage(value)
		}
	}
	// An optional marker wins over a required one.
	found.required = found.required && !found.optional
	return found
}
