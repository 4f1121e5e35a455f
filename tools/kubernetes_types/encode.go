package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const longestLine = 64 << 20

func answerLines(in io.Reader, out io.Writer, answer func([]byte) ([]byte, error)) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longestLine)
	answers := bufio.NewWriter(out)
	for lines.Scan() {
		encoded, err := answer(lines.Bytes())
		if err != nil {
			encoded = []byte(fmt.Sprintf("error: %q", err.Error()))
		}
		if _, err := answers.Write(append(encoded, '\n')); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return answers.Flush()
}

func encodeTemplate(line []byte) ([]byte, error) {
	var template corev1.PodTemplateSpec
	if err := json.Unmarshal(line, &template); err != nil {
		return nil, err
	}
	return json.Marshal(template)
}

// encodeQuantity parses what the JSON string says, as it says it: Quantity.UnmarshalJSON would drop
// the white space around it, which the schema of a custom resource refuses before that.
func encodeQuantity(line []byte) ([]byte, error) {
	var text string
	if err := json.Unmarshal(line, &text); err != nil {
		return nil, err
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return nil, err
	}
	return json.Marshal(quantity)
}
