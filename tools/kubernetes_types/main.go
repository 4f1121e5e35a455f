// Command kubernetes_types writes the table of the fields of a pod template, which twgen encodes templates with,
// and of the kinds that are attached to a version, and answers how Go itself encodes templates and quantities,
// for tests of that table.
//
//	go run . > ../../twgen/versioning/kubernetes_types.json
//	go run . -definition ScaledObject > ../../testing/kubernetes/definitions/keda.yaml
//	go run . -definition VerticalPodAutoscaler > ../../testing/kubernetes/definitions/vpa.yaml
//	go run . -definition PodMonitor, or PrometheusRule: for the tests of deploy/tick
//	go run . -encode < one template as JSON on each line
//	go run . -quantities < one quantity on each line, as a JSON string
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	encode := flag.Bool("encode", false, "encode the pod templates on stdin, one a line")
	quantities := flag.Bool("quantities", false, "encode the quantities on stdin, one a line")
	definition := flag.String("definition", "", "write the CustomResourceDefinition of a kind")
	flag.Parse()
	if err := run(*encode, *quantities, *definition, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(encode, quantities bool, definition string, in io.Reader, out io.Writer) error {
	switch {
	case encode:
		return answerLines(in, out, encodeTemplate)
	case quantities:
		return answerLines(in, out, encodeQuantity)
	case definition != "":
		return writeDefinition(definition, out)
	default:
		return writeTable(out)
	}
}
