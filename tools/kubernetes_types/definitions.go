package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// definition is a custom resource whose CustomResourceDefinition a Go module carries.
type definition struct {
	kind    string
	module  string
	sum     string
	path    string
	version string
}

// attached are the kinds of the table.
var attached = []definition{
	{
		"ScaledObject", "github.com/kedacore/keda/v2@v2.21.0", "h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=",
		"config/crd/bases/keda.sh_scaledobjects.yaml", "v1alpha1",
	},
	{
		"VerticalPodAutoscaler", "k8s.io/autoscaler/vertical-pod-autoscaler@v1.8.1",
		"h1:Pe8bV1wozN4gOKO1rleiIY5alIyAXN+DnXDbXQcL4fI=", "deploy/vpa-v1-crd-gen.yaml", "v1",
	},
}

// monitoring are kinds that deploy/ has, and tests alone know.
var monitoring = []definition{
	{
		"PodMonitor", "github.com/prometheus-operator/prometheus-operator@v0.91.0",
		"h1:rb4MKt5MlpYyDOzgGv1P8zhiHDxJrgQ6p6zhsIc+7ys=",
		"example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml", "v1",
	},
	{
		"PrometheusRule", "github.com/prometheus-operator/prometheus-operator@v0.91.0",
		"h1:rb4MKt5MlpYyDOzgGv1P8zhiHDxJrgQ6p6zhsIc+7ys=",
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml", "v1",
	},
}

// schema is as much of OpenAPI as these definitions use.
type schema struct {
	Type                 string             `json:"type"`
	Format               string             `json:"format"`
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties *schema            `json:"additionalProperties"`
	Items                *schema            `json:"items"`
	Required             []string           `json:"required"`
	Enum                 []string           `json:"enum"`
	Default              json.RawMessage    `json:"default"`
	Minimum              *int64             `json:"minimum"`
	MinLength            int                `json:"minLength"`
	MinItems             int                `json:"minItems"`
	IntOrString          bool               `json:"x-kubernetes-int-or-string"`
}

// read returns the definition as its module has it, less what people only read and what only a controller writes.
func (d definition) read() (map[string]any, *schema, error) {
	answer, err := exec.Command("go", "mod", "download", "-json", d.module).Output()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", d.module, err)
	}
	var downloaded struct{ Dir, Sum string }
	if err := json.Unmarshal(answer, &downloaded); err != nil {
		return nil, nil, err
	}
	if downloaded.Sum != d.sum {
		return nil, nil, fmt.Errorf("%s has the sum %s, not %s", d.module, downloaded.Sum, d.sum)
	}
	text, err := os.ReadFile(filepath.Join(downloaded.Dir, d.path))
	if err != nil {
		return nil, nil, err
	}
	for _, document := range strings.Split(string(text), "\n---\n") {
		var whole map[string]any
		if err := yaml.Unmarshal([]byte(document), &whole); err != nil {
			return nil, nil, err
		}
		if spec, ok := whole["spec"].(map[string]any); ok && spec["names"].(map[string]any)["kind"] == d.kind {
			return d.reduced(whole, spec)
		}
	}
	return nil, nil, fmt.Errorf("%s defines no %s", d.path, d.kind)
}

func (d definition) reduced(whole, spec map[string]any) (map[string]any, *schema, error) {
	versions := spec["versions"].([]any)
	versions = slices.DeleteFunc(versions, func(item any) bool { return item.(map[string]any)["name"] != d.version })
	if len(versions) != 1 {
		return nil, nil, fmt.Errorf("%s has no version %s", d.kind, d.version)
	}
	version := versions[0].(map[string]any)
	delete(version, "additionalPrinterColumns")
	spec["versions"] = versions
	root := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	root["properties"].(map[string]any)["status"] = map[string]any{
		"type": "object", "x-kubernetes-preserve-unknown-fields": true,
	}
	withoutDescriptions(root)
	text, err := json.Marshal(root["properties"].(map[string]any)["spec"])
	if err != nil {
		return nil, nil, err
	}
	var body schema
	return whole, &body, json.Unmarshal(text, &body)
}

func withoutDescriptions(value any) {
	switch value := value.(type) {
	case map[string]any:
		if _, isText := value["description"].(string); isText {
			delete(value, "description")
		}
		for _, item := range value {
			withoutDescriptions(item)
		}
	case []any:
		for _, item := range value {
			withoutDescriptions(item)
		}
	}
}

func writeDefinition(kind string, out io.Writer) error {
	for _, definition := range slices.Concat(attached, monitoring) {
		if definition.kind != kind {
			continue
		}
		whole, _, err := definition.read()
		if err != nil {
			return err
		}
		text, err := yaml.Marshal(whole)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "# %s of %s, by tools/kubernetes_types\n%s", definition.path, definition.module, text)
		return err
	}
	return fmt.Errorf("there is no definition of %s", kind)
}

func (t table) addDefinition(definition definition) error {
	_, body, err := definition.read()
	if err != nil {
		return err
	}
	_, err = t.addSchema(definition.kind+"Spec", body)
	return err
}

// addSchema adds the fields of an object; what it consists of is called by the path to it.
func (t table) addSchema(name string, of *schema) (string, error) {
	names := make([]string, 0, len(of.Properties))
	for property := range of.Properties {
		names = append(names, property)
	}
	slices.Sort(names)
	for _, property := range names {
		item := of.Properties[property]
		typeName, err := t.schemaType(name+"."+property, item)
		if err != nil {
			return "", err
		}
		enum := item.Enum
		if item.Items != nil {
			enum = item.Items.Enum
		}
		t.fields[name] = append(t.fields[name], field{
			Name:     property,
			Type:     typeName,
			Written:  "set",
			Required: slices.Contains(of.Required, property),
			Default:  item.Default,
			Enum:     enum,
			Minimum:  item.Minimum,
			NonEmpty: item.MinLength > 0 || item.MinItems > 0,
		})
	}
	return name, nil
}

func (t table) schemaType(name string, of *schema) (string, error) {
	switch {
	case of.IntOrString:
		return "intOrQuantity", nil
	case of.Type == "integer":
		return of.Format, nil
	case of.Type == "boolean":
		return "bool", nil
	case of.Type == "string":
		return "string", nil
	case of.Type == "array":
		item, err := t.schemaType(name, of.Items)
		return "[]" + item, err
	case of.AdditionalProperties != nil:
		item, err := t.schemaType(name, of.AdditionalProperties)
		return "{}" + item, err
	case of.Type == "object":
		return t.addSchema(name, of)
	default:
		return "", fmt.Errorf("%s: the table has no word for %s", name, of.Type)
	}
}
