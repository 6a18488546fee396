package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// plan is the content of tests/stages.yaml.
type plan struct {
	// Reference is the CPU time of calibrate on the machine for which the budgets were measured.
	Reference time.Duration `yaml:"reference"`
	Suites    []string      `yaml:"suites"`
	Stages    []stage       `yaml:"stages"`
}

// stage is a make target with its budgets.
type stage struct {
	Target string   `yaml:"target"`
	Suites []string `yaml:"suites"`
	// After names stages of the same suite that must have ended before this one starts.
	After []string `yaml:"after"`
	// Time is the budget of the duration on an otherwise idle machine, and CPU that of the processor time of all its
	// processes.
	Time time.Duration `yaml:"time"`
	CPU  time.Duration `yaml:"cpu"`
	// Cores is how many cores the stage keeps busy on average. It decides which stages run side by side.
	Cores float64 `yaml:"cores"`
}

func readPlan(file string) (*plan, error) {
	b, err := os.ReadFile(file) //nolint:gosec // a file of this module
	if err != nil {
		return nil, fmt.Errorf("read the stages: %w", err)
	}
	p := &plan{}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(p); err != nil {
		return nil, fmt.Errorf("read the stages: %s: %w", file, err)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("read the stages: %s: %w", file, err)
	}
	return p, nil
}

func (p *plan) check() error {
	if p.Reference <= 0 {
		return errors.New("reference must be positive")
	}
	seen := map[string]bool{}
	for _, s := range p.Stages {
		switch {
		case s.Target == "" || seen[s.Target]:
			return fmt.Errorf("target %q: empty or listed twice", s.Target)
		case len(s.Suites) == 0:
			return fmt.Errorf("target %q: suites is empty", s.Target)
		case s.Time <= 0 || s.CPU <= 0 || s.Cores <= 0:
			return fmt.Errorf("target %q: time, cpu and cores must be positive", s.Target)
		}
		for _, name := range s.Suites {
			if !slices.Contains(p.Suites, name) {
				return fmt.Errorf("target %q: unknown suite %q", s.Target, name)
			}
		}
		for _, name := range s.After {
			if !seen[name] {
				return fmt.Errorf("target %q: after names %q, which is not listed before it", s.Target, name)
			}
		}
		seen[s.Target] = true
	}
	return nil
}

// suite returns the stages of a suite in the order of the file.
func (p *plan) suite(name string) ([]stage, error) {
	if !slices.Contains(p.Suites, name) {
		return nil, fmt.Errorf("unknown suite %q; choose one of %q", name, p.Suites)
	}
	var stages []stage
	for _, s := range p.Stages {
		if slices.Contains(s.Suites, name) {
			stages = append(stages, s)
		}
	}
	return stages, nil
}
