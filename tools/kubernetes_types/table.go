package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// field is one line of the table: a field of a struct as JSON has it.
type field struct {
	Name string `json:"name"`
	// Type is string, bool, int32, int64, quantity, intOrString, intOrQuantity, object (of any fields) or the name of a
	// struct of the table; "[]" before it is a list, "{}" a map.
	Type string `json:"type"`
	// Written says when Go writes the field: "set" (when it is present), "filled" (when it is not the zero
	// value), "always" (its zero value when it is absent) or "orNull" (null when it is absent).
	Written  string          `json:"written"`
	Required bool            `json:"required,omitempty"`
	Default  json.RawMessage `json:"default,omitempty"`
	// Enum is every value that an API server takes; of the items, for a list.
	Enum []string `json:"enum,omitempty"`
	// Keys are the fields that tell the items of a list apart.
	Keys []string `json:"keys,omitempty"`
	// Minimum is the least number, NonEmpty says that a string or a list must not be empty.
	Minimum  *int64 `json:"minimum,omitempty"`
	NonEmpty bool   `json:"nonempty,omitempty"`
}

var scalars = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():  "quantity",
	reflect.TypeFor[intstr.IntOrString](): "intOrString",
	reflect.TypeFor[metav1.Time]():        "string",
	reflect.TypeFor[metav1.FieldsV1]():    "object",
	reflect.TypeFor[[]byte]():             "string",
}

var kinds = map[reflect.Kind]string{
	reflect.String: "string",
	reflect.Bool:   "bool",
	reflect.Int32:  "int32",
	reflect.Int64:  "int64",
}

// keptFields are the only fields of a type that the schema of a custom resource keeps;
// goneFields are those that it does not know. The table has the others of a type under its name with ".more".
var (
	keptFields = map[reflect.Type][]string{
		reflect.TypeFor[metav1.ObjectMeta](): {"annotations", "finalizers", "labels", "name", "namespace"},
	}
	goneFields = map[reflect.Type][]string{
		reflect.TypeFor[corev1.PodSpec](): {"schedulingGroup", "workloadRef"},
	}
)

// roots are what a worker's pods, an autoscaler, a disruption budget and the manifests of a render are made of.
var roots = []reflect.Type{
	reflect.TypeFor[corev1.PodTemplateSpec](),
	reflect.TypeFor[autoscalingv1.HorizontalPodAutoscalerSpec](),
	reflect.TypeFor[autoscalingv2.HorizontalPodAutoscalerSpec](),
	reflect.TypeFor[policyv1.PodDisruptionBudgetSpec](),
	reflect.TypeFor[appsv1.DeploymentSpec](),
	reflect.TypeFor[batchv1.JobSpec](),
	reflect.TypeFor[corev1.ConfigMap](),
	reflect.TypeFor[corev1.ServiceAccount](),
	reflect.TypeFor[rbacv1.Role](),
	reflect.TypeFor[rbacv1.RoleBinding](),
}

// unmarkedEnumerations have no other value than their constants, though no marker says so.
var unmarkedEnumerations = []reflect.Type{
	reflect.TypeFor[corev1.ContainerRestartPolicy](),
	reflect.TypeFor[corev1.ContainerRestartRuleAction](),
	reflect.TypeFor[corev1.ContainerRestartRuleOnExitCodesOperator](),
	reflect.TypeFor[corev1.OSName](),
	reflect.TypeFor[corev1.PodSELinuxChangePolicy](),
	reflect.TypeFor[corev1.RecursiveReadOnlyMode](),
	reflect.TypeFor[corev1.ResourceResizeRestartPolicy](),
	reflect.TypeFor[autoscalingv2.HPAScalingPolicyType](),
	reflect.TypeFor[autoscalingv2.MetricSourceType](),
	reflect.TypeFor[autoscalingv2.MetricTargetType](),
	reflect.TypeFor[autoscalingv2.ScalingPolicySelect](),
	reflect.TypeFor[metav1.LabelSelectorOperator](),
}

// table is the closure of types that the roots are made of.
type table struct {
	sources sources
	fields  map[string][]field
	types   map[string]reflect.Type
}

func writeTable(out io.Writer) error {
	found, err := readSources(
		"k8s.io/api/apps/v1", "k8s.io/api/autoscaling/v1", "k8s.io/api/autoscaling/v2", "k8s.io/api/batch/v1",
		"k8s.io/api/core/v1", "k8s.io/api/policy/v1", "k8s.io/api/rbac/v1", "k8s.io/apimachinery/pkg/apis/meta/v1",
	)
	if err != nil {
		return err
	}
	for _, of := range unmarkedEnumerations {
		found.enumerations[qualifiedName(of)] = true
	}
	t := table{sources: found, fields: map[string][]field{}, types: map[string]reflect.Type{}}
	for _, root := range roots {
		if _, err := t.addStruct(root); err != nil {
			return err
		}
	}
	for _, definition := range attached {
		if err := t.addDefinition(definition); err != nil {
			return err
		}
	}
	return t.write(out)
}

func qualifiedName(of reflect.Type) string {
	return of.PkgPath() + "." + of.Name()
}

// structName is what the table calls a struct: two versions of autoscaling have types of one name.
func structName(of reflect.Type) string {
	if of.PkgPath() == "k8s.io/api/autoscaling/v1" {
		return "V1" + of.Name()
	}
	return of.Name()
}

func (t table) addStruct(of reflect.Type) (string, error) {
	name := structName(of)
	if seen, ok := t.types[name]; ok {
		if seen != of {
			return name, fmt.Errorf("two types are called %s", name)
		}
		return name, nil
	}
	t.types[name] = of
	fields, err := t.structFields(of, true)
	if err != nil {
		return name, err
	}
	t.fields[name] = fields
	more, err := t.structFields(of, false)
	if len(more) > 0 {
		t.fields[name+".more"] = more
	}
	return name, err
}

// structFields returns the fields that the schema of a custom resource keeps, or the others.
func (t table) structFields(of reflect.Type, kept bool) ([]field, error) {
	var fields []field
	for index := range of.NumField() {
		goField := of.Field(index)
		name, options, _ := strings.Cut(goField.Tag.Get("json"), ",")
		switch {
		case name == "-":
			continue
		case goField.Anonymous && name == "":
			inlined, err := t.structFields(goField.Type, kept)
			if err != nil {
				return nil, err
			}
			fields = append(fields, inlined...)
			continue
		case isKept(of, name) != kept:
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
	found := t.sources.markers[qualifiedName(of)+"."+goField.Name]
	return field{
		Name:     name,
		Type:     typeName,
		Written:  written,
		Required: found.required || !found.optional && !slices.Contains(options, "omitempty"),
		Default:  found.defaultValue,
		Enum:     t.enum(goField.Type),
		Keys:     found.listKeys,
	}, nil
}

func (t table) enum(of reflect.Type) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if !t.sources.enumerations[qualifiedName(of)] {
		return nil
	}
	return t.sources.values[qualifiedName(of)]
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
		return t.addStruct(of)
	default:
		return "", fmt.Errorf("the table has no word for %s", of)
	}
}

// written follows encoding/json: omitempty leaves out nil pointers, empty collections and zero scalars,
// but never a struct, which omitzero leaves out.
func written(of reflect.Type, options []string) (string, error) {
	omitEmpty := slices.Contains(options, "omitempty")
	switch kind := of.Kind(); {
	case slices.Contains(options, "omitzero"):
		return "filled", nil
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
