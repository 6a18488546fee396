// Package tokens formats values of the CDK, which are tokens until the template resolves them, as text and JSON.
package tokens

import (
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

// Field is the name of a field of a JSON object, and its value in JSON. It replaces encoding/json, which would escape
// the tokens in values.
type Field [2]string

// Object returns a JSON object.
func Object(fields []Field) string {
	members := make([]string, 0, len(fields))
	for _, f := range fields {
		members = append(members, Quote(f[0])+":"+f[1])
	}
	return "{" + strings.Join(members, ",") + "}"
}

// Quote quotes a name or URL, which has no characters that JSON escapes.
func Quote(s string) string { return `"` + s + `"` }

// Integer formats n or its token.
func Integer(n *float64) string {
	if *awscdk.Token_IsUnresolved(n) {
		return *awscdk.Token_AsString(n, nil)
	}
	return strconv.Itoa(int(*n))
}

// Duration formats d or its token for time.ParseDuration.
func Duration(d awscdk.Duration) string {
	seconds := d.ToSeconds(&awscdk.TimeConversionOptions{Integral: jsii.Bool(false)})
	return *awscdk.Token_AsString(seconds, nil) + "s"
}
