package model

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
)

// decodeQuery decodes a request of the query protocol: a form with the members of the input.
func (s *Service) decodeQuery(r *Request) (*Call, error) {
	form, err := url.ParseQuery(string(r.Body))
	if err != nil {
		return nil, fmt.Errorf("the body is not a form: %w", err)
	}
	if len(r.Body) == 0 {
		form = r.Query
	}
	name := form.Get("Action")
	op, ok := s.Operations[name]
	if !ok {
		return nil, fmt.Errorf("no operation has the action %q", name)
	}
	c := &Call{s, op, map[string]any{}}
	if op.Input == nil {
		return c, nil
	}
	for name, m := range s.shape(op.Input).Members {
		if value := s.formValue(form, placeOf(name, m), m); value != nil {
			c.Input[name] = value
		}
	}
	return c, nil
}

func placeOf(name string, m *Member) string {
	if m.LocationName != "" {
		return m.LocationName
	}
	return name
}

// formValue returns a value from a form, or nil if the form does not have it.
func (s *Service) formValue(form url.Values, at string, m *Member) any {
	switch shape := s.shape(m); shape.Type {
	case typeStructure:
		fields := map[string]any{}
		for name, member := range shape.Members {
			if value := s.formValue(form, at+"."+placeOf(name, member), member); value != nil {
				fields[name] = value
			}
		}
		if len(fields) == 0 {
			return nil
		}
		return fields
	case typeList:
		if !shape.Flattened {
			at += "." + placeOf("member", shape.Member)
		}
		return s.formList(form, at, shape.Member)
	case typeMap:
		return s.formMap(form, at, shape)
	default:
		if !form.Has(at) {
			return nil
		}
		return s.typed(m, form.Get(at))
	}
}

func (s *Service) formList(form url.Values, at string, member *Member) any {
	var list []any
	for i := 1; ; i++ {
		value := s.formValue(form, at+"."+strconv.Itoa(i), member)
		if value == nil {
			break
		}
		list = append(list, value)
	}
	if list == nil {
		return nil
	}
	return list
}

func (s *Service) formMap(form url.Values, at string, shape *Shape) any {
	if !shape.Flattened {
		at += ".entry"
	}
	entries := map[string]any{}
	for i := 1; ; i++ {
		entry := at + "." + strconv.Itoa(i) + "."
		key := entry + placeOf("key", shape.Key)
		if !form.Has(key) {
			break
		}
		entries[form.Get(key)] = s.formValue(form, entry+placeOf("value", shape.Value), shape.Value)
	}
	if len(entries) == 0 {
		return nil
	}
	return entries
}

// element is an element of a document, with its text and its elements.
type element struct {
	name  string
	text  strings.Builder
	parts []*element
}

// decodeXML decodes the document of a payload member.
func (s *Service) decodeXML(m *Member, body []byte) (any, error) {
	root := &element{}
	d, open := xml.NewDecoder(bytes.NewReader(body)), []*element{root}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the body is not XML: %w", err)
		}
		current := open[len(open)-1]
		switch t := token.(type) {
		case xml.StartElement:
			e := &element{name: t.Name.Local}
			current.parts = append(current.parts, e)
			open = append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			current.text.Write(t)
		}
	}
	if len(root.parts) != 1 {
		return nil, fmt.Errorf("the body has %d root elements", len(root.parts))
	}
	return s.xmlValue(m, root.parts), nil
}

// xmlValue returns the value of a member from its elements: one, or those of a flattened list.
func (s *Service) xmlValue(m *Member, elements []*element) any {
	shape := s.shape(m)
	switch shape.Type {
	case typeStructure:
		fields := map[string]any{}
		named := map[string][]*element{}
		for _, e := range elements[0].parts {
			named[e.name] = append(named[e.name], e)
		}
		for name, member := range shape.Members {
			place := placeOf(name, member)
			if found := named[place]; len(found) > 0 {
				fields[name] = s.xmlValue(member, found)
			}
			delete(named, place)
		}
		for name, found := range named { // Validate reports them
			fields[name] = found[0].text.String()
		}
		return fields
	case typeList:
		if !shape.Flattened && !m.Flattened {
			elements = elements[0].parts
		}
		list := make([]any, len(elements))
		for i, e := range elements {
			list[i] = s.xmlValue(shape.Member, []*element{e})
		}
		return list
	default:
		return s.typed(m, elements[0].text.String())
	}
}
