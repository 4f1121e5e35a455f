package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// field is one line of the table: a field of a struct as JSON has it.
type field struct {
	Name string `json:"name"`
	// Type is string, bool, int32, int64, quantity, intOrString or the name of a struct of the table;
	// "[]" before it is a list, "{}" a map.
	Type string `json:"type"`
	// Written says when Go writes the field: "set" (when it is present), "filled" (when it is not the zero
	// value), "always" (its zero value when it is absent) or "orNull" (null when it is absent).
	Written  string          `json:"written"`
	Required bool            `json:"required,omitempty"`
	Default  json.RawMessage `json:"default,omitempty"`
}

var scalars = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():  "quantity",
	reflect.TypeFor[intstr.IntOrString](): "intOrString",
}

var kinds = map[reflect.Kind]string{
	reflect.String: "string",
	reflect.Bool:   "bool",
	reflect.Int32:  "int32",
	reflect.Int64:  "int64",
}

// keptFields are the only fields of a type that the schema of a custom resource keeps;
// goneFields are those that it does not know.
var (
	keptFields = map[reflect.Type][]string{
		reflect.TypeFor[metav1.ObjectMeta](): {"annotations", "finalizers", "labels", "name", "namespace"},
	}
	goneFields = map[reflect.Type][]string{
		reflect.TypeFor[corev1.PodSpec](): {"schedulingGroup", "workloadRef"},
	}
)

// table is the closure of types that a pod template is made of.
type table struct {
	markers map[string]markers
	fields  map[string][]field
	types   map[string]reflect.Type
}

func writeTable(out io.Writer) error {
	found, err := readMarkers("k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/apis/meta/v1")
	if err != nil {
		return err
	}
	t := table{markers: found, fields: map[string][]field{}, types: map[string]reflect.Type{}}
	if err := t.addStruct(reflect.TypeFor[corev1.PodTemplateSpec]()); err != nil {
		return err
	}
	return t.write(out)
}

func (t table) addStruct(of reflect.Type) error {
	if seen, ok := t.types[of.Name()]; ok {
		if seen != of {
			return fmt.Errorf("two types are called %s", of.Name())
		}
		return nil
	}
	t.types[of.Name()] = of
	fields, err := t.structFields(of)
	t.fields[of.Name()] = fields
	return err
}

func (t table) structFields(of reflect.Type) ([]field, error) {
	var fields []field
	for index := range of.NumField() {
		goField := of.Field(index)
		name, options, _ := strings.Cut(goField.Tag.Get("json"), ",")
		switch {
		case name == "-" || !isKept(of, name):
			continue
		case goField.Anonymous && name == "":
			inlined, err := t.structFields(goField.Type)
			if err != nil {
				return nil, err
			}
			fields = append(fields, inlined...)
			continue
		}
		row, err := t.row(of, goField, name, strings.Split(options, ","))
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", of.Name(), goField.Name, err)
		}
		fields = append(fields, row)
	}
	return fields, nil
}

func isKept(of reflect.Type, name string) bool {
	if kept, ok := keptFields[of]; ok {
		return slices.Contains(kept, name)
	}
	return !slices.Contains(goneFields[of], name)
}

func (t table) row(of reflect.Type, goField reflect.StructField, name string, options []string) (field, error) {
	typeName, err := t.typeName(goField.Type)
	if err != nil {
		return field{}, err
	}
	written, err := written(goField.Type, options)
	if err != nil {
		return field{}, err
	}
	found := t.markers[of.Name()+"."+goField.Name]
	return field{
		Name:     name,
		Type:     typeName,
		Written:  written,
		Required: found.required || !found.optional && !slices.Contains(options, "omitempty"),
		Default:  found.defaultValue,
	}, nil
}

func (t table) typeName(of reflect.Type) (string, error) {
	if name, ok := scalars[of]; ok {
		return name, nil
	}
	if name, ok := kinds[of.Kind()]; ok {
		return name, nil
	}
	switch of.Kind() {
	case reflect.Pointer:
		return t.typeName(of.Elem())
	case reflect.Slice:
		name, err := t.typeName(of.Elem())
		return "[]" + name, err
	case reflect.Map:
		name, err := t.typeName(of.Elem())
		return "{}" + name, err
	case reflect.Struct:
		return of.Name(), t.addStruct(of)
	default:
		return "", fmt.Errorf("the table has no word for %s", of)
	}
}

// written follows encoding/json: omitempty leaves out nil pointers, empty collections and zero scalars,
// but never a struct.
func written(of reflect.Type, options []string) (string, error) {
	omitEmpty := slices.Contains(options, "omitempty")
	switch kind := of.Kind(); {
	case slices.Contains(options, "omitzero"):
		return "", fmt.Errorf("the table has no word for omitzero")
	case kind == reflect.Pointer && omitEmpty:
		return "set", nil
	case kind == reflect.Struct:
		return "always", nil
	case omitEmpty:
		return "filled", nil
	case kind == reflect.Pointer || kind == reflect.Slice || kind == reflect.Map:
		return "orNull", nil
	default:
		return "always", nil
	}
}

func (t table) write(out io.Writer) error {
	names := make([]string, 0, len(t.fields))
	for name := range t.fields {
		names = append(names, name)
	}
	slices.Sort(names)
	text := bufio.NewWriter(out)
	fmt.Fprint(text, "{")
	for index, name := range names {
		if index > 0 {
			fmt.Fprint(text, ",")
		}
		fmt.Fprintf(text, "\n%q: [", name)
		if err := writeFields(text, t.fields[name]); err != nil {
			return err
		}
		fmt.Fprint(text, "\n]")
	}
	fmt.Fprint(text, "\n}\n")
	return text.Flush()
}

func writeFields(text io.Writer, fields []field) error {
	for index, row := range fields {
		line, err := json.Marshal(row)
		if err != nil {
			return err
		}
		if index > 0 {
			fmt.Fprint(text, ",")
		}
		fmt.Fprintf(text, "\n {%s}", line[1:len(line)-1])
	}
	return nil
}
