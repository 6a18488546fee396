// Package model decodes requests to AWS and validates them with the service models of botocore: required members,
// types, lengths, ranges, patterns and enumerations.
package model

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
)

// Types of shapes.
const (
	typeStructure = "structure"
	typeList      = "list"
	typeMap       = "map"
	typeString    = "string"
	typeBlob      = "blob"
	typeBoolean   = "boolean"
	typeInteger   = "integer"
	typeLong      = "long"
	typeFloat     = "float"
	typeDouble    = "double"
	typeTimestamp = "timestamp"
)

// Models reads service models from the data folder of botocore. It is safe for concurrent use.
type Models struct {
	dir string

	mu     sync.Mutex
	loaded map[string]*Service
}

// Open returns the models in the data folder of botocore. It reads a model on its first use.
func Open(dir string) *Models { return &Models{dir: dir, loaded: map[string]*Service{}} }

// Install returns the models of the botocore in localstack/.venv of a repository. It creates this environment if it
// does not exist, which takes some seconds.
func Install(ctx context.Context, repository string) (*Models, error) {
	folder := filepath.Join(repository, "localstack")
	install := exec.CommandContext(ctx, "python3", "venv_python.py", "ministack")
	install.Dir = folder
	out, err := install.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("create %s/.venv: %w\n%s", folder, err, out)
	}
	pattern := filepath.Join(folder, ".venv", "lib", "python3*", "site-packages", "botocore", "data")
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("models of botocore: no folder %s: %w", pattern, errors.Join(err, os.ErrNotExist))
	}
	return Open(found[0]), nil
}

// Service is the model of a service.
type Service struct {
	Name       string                `json:"-"`
	Metadata   Metadata              `json:"metadata"`
	Operations map[string]*Operation `json:"operations"`
	Shapes     map[string]*Shape     `json:"shapes"`
}

// Metadata is the protocol of a service.
type Metadata struct {
	Protocol     string `json:"protocol"`
	TargetPrefix string `json:"targetPrefix"`
}

// Operation is an operation of a service.
type Operation struct {
	Name string `json:"name"`
	HTTP struct {
		Method     string `json:"method"`
		RequestURI string `json:"requestUri"`
	} `json:"http"`
	Input *Member `json:"input"`
}

// Member refers to the shape of a member, with its place in a request of the REST protocols.
type Member struct {
	Shape        string `json:"shape"`
	Location     string `json:"location"`
	LocationName string `json:"locationName"`
	Flattened    bool   `json:"flattened"`
	Streaming    bool   `json:"streaming"`
}

// Shape is a type with its constraints. Lengths of strings are in characters, of blobs in bytes.
type Shape struct {
	Type      string             `json:"type"`
	Required  []string           `json:"required"`
	Members   map[string]*Member `json:"members"`
	Member    *Member            `json:"member"`
	Key       *Member            `json:"key"`
	Value     *Member            `json:"value"`
	Min       *float64           `json:"min"`
	Max       *float64           `json:"max"`
	Pattern   string             `json:"pattern"`
	Enum      []string           `json:"enum"`
	Payload   string             `json:"payload"`
	Flattened bool               `json:"flattened"`
	Streaming bool               `json:"streaming"`
	Document  bool               `json:"document"`
	Union     bool               `json:"union"`
}

// folders are the folders of services whose name in signatures is another.
var folders = map[string]string{"monitoring": "cloudwatch"}

// Service returns the model of a service, by its name in signatures. The error is [os.ErrNotExist] if botocore has no
// such service.
func (m *Models) Service(name string) (*Service, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.loaded[name]; ok {
		return s, nil
	}
	folder, ok := folders[name]
	if !ok {
		folder = name
	}
	s, err := load(filepath.Join(m.dir, filepath.Base(folder)))
	if err != nil {
		return nil, fmt.Errorf("model of %s: %w", name, err)
	}
	s.Name = name
	m.loaded[name] = s
	return s, nil
}

// load reads the newest version of a model.
func load(dir string) (s *Service, err error) {
	found, err := filepath.Glob(filepath.Join(dir, "*", "service-2.json.gz"))
	if err != nil {
		return nil, fmt.Errorf("find: %w", err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, os.ErrNotExist)
	}
	slices.Sort(found) // versions are dates
	file, err := os.Open(found[len(found)-1])
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("unzip: %w", err)
	}
	s = &Service{}
	if err := json.NewDecoder(unzipped).Decode(s); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return s, nil
}

// shape returns the shape of a member.
func (s *Service) shape(m *Member) *Shape {
	if found, ok := s.Shapes[m.Shape]; ok {
		return found
	}
	return &Shape{}
}
