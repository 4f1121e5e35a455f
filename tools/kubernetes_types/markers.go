package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// markers is what the comment above a field says to the generators of Kubernetes.
type markers struct {
	optional     bool
	required     bool
	defaultValue json.RawMessage
	// listKeys are the fields that tell the items of a list apart.
	listKeys []string
}

// sources is what the sources of packages say beyond the types that they compile to, each under
// "import path.Type" or "import path.Type.Field", in Go's names.
type sources struct {
	markers map[string]markers
	// values are the constants of a type of strings.
	values map[string][]string
	// enumerations are the types that have no other value than their constants.
	enumerations map[string]bool
}

func readSources(packages ...string) (sources, error) {
	found := sources{map[string]markers{}, map[string][]string{}, map[string]bool{}}
	for _, name := range packages {
		directory, err := exec.Command("go", "list", "-f", "{{.Dir}}", name).Output()
		if err != nil {
			return found, err
		}
		paths, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(directory)), "*types.go"))
		if err != nil {
			return found, err
		}
		for _, path := range paths {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				return found, err
			}
			found.readFile(name, file)
		}
	}
	return found, nil
}

func (s sources) readFile(packageName string, file *ast.File) {
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				s.readType(packageName+"."+spec.Name.Name, spec, group.Doc)
			case *ast.ValueSpec:
				s.readConstant(packageName, spec)
			}
		}
	}
}

func (s sources) readType(name string, declared *ast.TypeSpec, comment *ast.CommentGroup) {
	structure, ok := declared.Type.(*ast.StructType)
	if !ok {
		s.enumerations[name] = comment != nil && strings.Contains(comment.Text()+"\n", "+enum\n")
		return
	}
	for _, goField := range structure.Fields.List {
		for _, fieldName := range goField.Names {
			s.markers[name+"."+fieldName.Name] = fieldMarkers(goField.Doc)
		}
	}
}

func (s sources) readConstant(packageName string, declared *ast.ValueSpec) {
	of, ok := declared.Type.(*ast.Ident)
	if !ok {
		return
	}
	for _, value := range declared.Values {
		if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				name := packageName + "." + of.Name
				s.values[name] = append(s.values[name], text)
			}
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
		case strings.HasPrefix(marker, "+listMapKey="):
			found.listKeys = append(found.listKeys, strings.TrimPrefix(marker, "+listMapKey="))
		}
	}
	// An optional marker wins over a required one.
	found.required = found.required && !found.optional
	return found
}
