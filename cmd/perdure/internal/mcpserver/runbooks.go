package mcpserver

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/perdure/perdure/docs/operate"
	"github.com/perdure/perdure/provider"
)

type runbookArgs struct {
	Query string `json:"query" jsonschema:"words to search for, such as the name of an alarm, a status or an error"`
	Limit int    `json:"limit,omitempty" jsonschema:"maximum number of sections, 1 to 5, default 3"`
}

const (
	// maxSectionBytes is the size at which a section is cut. All sections are smaller, because a part of a procedure
	// is dangerous.
	maxSectionBytes = 8 << 10
	// headingWeight is the number of occurrences that a word counts for in a heading, or in the first cell of a row,
	// which names an alarm, a status or an error.
	headingWeight = 6
	// maxQueryBytes is the maximum size of a query.
	maxQueryBytes = 500
)

// section is a part of a page in docs/operate with its own heading.
type section struct {
	Page    string `json:"page"`
	Heading string `json:"heading"`
	Text    string `json:"text"`
}

// indexedSection is a section with the number of occurrences of its words.
type indexedSection struct {
	section

	words map[string]float64
}

// runbookIndex returns the sections of all pages.
var runbookIndex = sync.OnceValues(func() ([]indexedSection, error) {
	names, err := fs.Glob(operate.Pages, "*.md")
	if err != nil {
		return nil, fmt.Errorf("runbooks: %w", err)
	}
	var all []indexedSection
	for _, name := range names {
		page, err := fs.ReadFile(operate.Pages, name)
		if err != nil {
			return nil, fmt.Errorf("runbooks: %w", err)
		}
		for _, s := range sectionsOf(name, string(page)) {
			all = append(all, indexSection(s))
		}
	}
	return all, nil
})

// sectionsOf splits a page at its headings. A line in a code block is no heading.
func sectionsOf(name, page string) (all []section) {
	title, inCode := "", false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inCode = !inCode
		}
		if heading := strings.TrimLeft(line, "#"); !inCode && len(heading) < len(line) && heading[0] == ' ' {
			heading = strings.TrimSpace(heading)
			title = cmp.Or(title, heading)
			if heading != title {
				heading = title + ": " + heading
			}
			all = append(all, section{Page: "docs/operate/" + name, Heading: heading})
			continue
		}
		if len(all) > 0 {
			all[len(all)-1].Text += line
		}
	}
	for i := range all {
		all[i].Text = strings.TrimSpace(all[i].Text)
	}
	return slices.DeleteFunc(all, func(s section) bool { return s.Text == "" })
}

func indexSection(s section) indexedSection {
	x := indexedSection{section: s, words: map[string]float64{}}
	for _, w := range wordsOf(s.Heading) {
		x.words[w] += headingWeight
	}
	for line := range strings.Lines(s.Text) {
		for _, w := range wordsOf(line) {
			x.words[w]++
		}
		if row, ok := strings.CutPrefix(line, "|"); ok {
			first, _, _ := strings.Cut(row, "|")
			for _, w := range wordsOf(first) {
				x.words[w] += headingWeight
			}
		}
	}
	return x
}

// wordsOf returns the words of a text in lower case, without an ending that depends on the sentence.
func wordsOf(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	for i, w := range words {
		for _, ending := range []string{"ing", "ed", "es", "s"} {
			if stem, cut := strings.CutSuffix(w, ending); cut && len(stem) > 3 {
				words[i] = stem
				break
			}
		}
	}
	return words
}

// searchRunbooks returns the sections that fit a query best.
func searchRunbooks(query string, limit int) ([]section, error) {
	index, err := runbookIndex()
	if err != nil {
		return nil, err
	}
	words := wordsOf(query)
	slices.Sort(words)
	words = slices.Compact(words)
	scores := make([]float64, len(index))
	for _, w := range words {
		have := 0
		for i := range index {
			if index[i].words[w] > 0 {
				have++
			}
		}
		if have == 0 {
			continue
		}
		rarity := math.Log(1 + float64(len(index))/float64(have))
		for i := range index {
			n := index[i].words[w]
			scores[i] += rarity * n / (n + 2)
		}
	}
	order := make([]int, 0, len(index))
	for i := range index {
		if scores[i] > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	var best []section
	for _, i := range order[:min(limit, len(order))] {
		found := index[i].section
		found.Text = boundedText(found.Text, maxSectionBytes)
		best = append(best, found)
	}
	return best, nil
}

func (s *server) runbooks(_ context.Context, c call[runbookArgs]) (*toolResult, error) {
	if len(c.in.Query) > maxQueryBytes {
		return nil, &provider.FieldError{
			Field: "query", Problem: fmt.Sprintf("must have at most %d bytes, has %d", maxQueryBytes, len(c.in.Query)),
		}
	}
	limit, err := limitOf(c.in.Limit, 3, 5)
	if err != nil {
		return nil, err
	}
	// the words of this prefix of all alarms are on many pages
	found, err := searchRunbooks(strings.ReplaceAll(c.in.Query, "perdure-"+s.env.HubName+"-", ""), limit)
	if err != nil {
		return nil, err
	}
	return &toolResult{Summary: fmt.Sprintf("%d sections.", len(found)), Runbooks: found}, nil
}
