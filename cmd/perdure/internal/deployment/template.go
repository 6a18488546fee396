package deployment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Parameters of the template that deploy sets.
const (
	parameterHub    = "HubName"
	parameterBucket = "CodeBucket"
	parameterPrefix = "CodePrefix"
	parameterCPU    = "Architecture"

	parameterInboxTimeout    = "InboxTimeout"
	parameterInboxVisibility = "InboxVisibility"
)

// codePrefix is the prefix of the keys of code.
const codePrefix = "functions/"

// functionNames are the functions, with the parameters of their build IDs.
var functionNames = []struct{ name, parameter string }{
	{"orchestrator", "OrchestratorBuild"},
	{"worker", "WorkerBuild"},
	{"renewer", "RenewerBuild"},
	{"api", "APIBuild"},
}

// Template is a CloudFormation template with its parameters.
type Template struct {
	// Body is the template without insignificant space.
	Body       []byte
	parameters map[string]parameter
}

type parameter struct {
	Type           string   `json:"Type"`
	Default        any      `json:"Default"`
	AllowedValues  []any    `json:"AllowedValues"`
	AllowedPattern string   `json:"AllowedPattern"`
	MinValue       *float64 `json:"MinValue"`
	MaxValue       *float64 `json:"MaxValue"`
}

// ParseTemplate reads a template in JSON. It returns an error if the template has no parameters for the code.
func ParseTemplate(raw []byte) (*Template, error) {
	var parsed struct {
		Parameters map[string]parameter `json:"Parameters"`
	}
	if err := json.Unmarshal(raw, &parsed); err != nil {
		return nil, fmt.Errorf("template is not JSON: %w", err)
	}
	t := &Template{parameters: parsed.Parameters}
	required := []string{parameterHub, parameterBucket, parameterPrefix, parameterCPU}
	for _, f := range functionNames {
		required = append(required, f.parameter)
	}
	for _, name := range required {
		if _, ok := t.parameters[name]; !ok {
			return nil, fmt.Errorf("template has no parameter %s; create it with infra/cdk/cmd/reference -standalone",
				name)
		}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, fmt.Errorf("template is not JSON: %w", err)
	}
	t.Body = compact.Bytes()
	return t, nil
}

// isSetByDeploy reports whether deploy sets a parameter itself.
func isSetByDeploy(name string) bool {
	for _, f := range functionNames {
		if name == f.parameter {
			return true
		}
	}
	return name == parameterHub || name == parameterBucket || name == parameterPrefix
}

// check returns an error if a parameter cannot have a value.
func (t *Template) check(name, value string) error {
	p, ok := t.parameters[name]
	switch {
	case !ok:
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(t.parameters)), isSetByDeploy)
		return fmt.Errorf("--parameter: the template has no parameter %q; it has %s", name, strings.Join(names, ", "))
	case name == parameterHub:
		return fmt.Errorf("--parameter: set %s with --hub", name)
	case isSetByDeploy(name):
		return fmt.Errorf("--parameter: %s is set by the command", name)
	}
	if err := p.check(value); err != nil {
		return fmt.Errorf("--parameter %s: %w", name, err)
	}
	return nil
}

func (p *parameter) check(value string) error {
	allowed := make([]string, len(p.AllowedValues))
	for i, v := range p.AllowedValues {
		allowed[i] = fmt.Sprint(v)
	}
	if len(allowed) > 0 && !slices.Contains(allowed, value) {
		return fmt.Errorf("must be one of %s, is %q", strings.Join(allowed, ", "), value)
	}
	if p.Type == "Number" {
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil || strings.Trim(value, "+-.eE0123456789") != "": // CloudFormation has no NaN and no 0x10
			return fmt.Errorf("must be a number, is %q", value)
		case p.MinValue != nil && n < *p.MinValue:
			return fmt.Errorf("must be at least %v, is %s", *p.MinValue, value)
		case p.MaxValue != nil && n > *p.MaxValue:
			return fmt.Errorf("must be at most %v, is %s", *p.MaxValue, value)
		}
	}
	if p.AllowedPattern == "" {
		return nil
	}
	// CloudFormation matches the whole value. It checks a pattern that Go does not support.
	if re, err := regexp.Compile("^(?:" + p.AllowedPattern + ")$"); err == nil && !re.MatchString(value) {
		return fmt.Errorf("must match %s, is %q", p.AllowedPattern, value)
	}
	return nil
}

// values are the values of the parameters of a stack.
type values struct {
	// set has the values that change or are new.
	set map[string]string
	// kept are the names of the other parameters of the stack.
	kept []string
	// effective has all values, including defaults of the template.
	effective map[string]string
}

// resolve combines given values with those of the stack, which may be nil.
func (t *Template) resolve(given, stack map[string]string) (*values, error) {
	v := &values{set: given, effective: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(t.parameters)) {
		p := t.parameters[name]
		value, isGiven := given[name]
		old, isKept := stack[name]
		switch {
		case isGiven:
			v.effective[name] = value
		case isKept:
			v.kept = append(v.kept, name)
			v.effective[name] = old
		case p.Default != nil:
			v.effective[name] = fmt.Sprint(p.Default)
		}
	}
	timeout, _ := strconv.ParseFloat(v.effective[parameterInboxTimeout], 64)
	visibility, err := strconv.ParseFloat(v.effective[parameterInboxVisibility], 64)
	if err == nil && visibility < timeout {
		return nil, fmt.Errorf("--parameter %s: must not be less than %s, %v s; is %v s", parameterInboxVisibility,
			parameterInboxTimeout, timeout, visibility)
	}
	return v, nil
}
