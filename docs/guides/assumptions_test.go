package guides_test

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const assumptionsPage = "../internals/aws-assumptions.md"

// leastAssumptions is the minimum number of entries. Entries are never removed while the code relies on them.
const leastAssumptions = 80

var (
	assumptionID   = regexp.MustCompile(`^A[1-9][0-9]*$`)
	shownBy        = regexp.MustCompile(`^(none|D?L?M?S?)$`)
	accountCheck   = regexp.MustCompile("^(none|`doctor`|[a-z0-9]+(-[a-z0-9]+)+)$")
	documentOfAWS  = regexp.MustCompile(`\[D([0-9]+)\]`)
	documentURL    = regexp.MustCompile(`(?m)^\[D([0-9]+)\]: (\S+)$`)
	documentsOfRow = regexp.MustCompile(`^D([0-9]+)(?:( to |, )D([0-9]+))?$`)
)

// hostsOfAWS are the hosts of AWS's documents.
var hostsOfAWS = []string{"docs.aws.amazon.com", "docs.amazonaws.cn", "aws.amazon.com"}

// assumption is a row of the page. Its fields are in the order of the columns.
type assumption struct{ id, text, file, document, impact, clouds, check string }

// tableRows returns the cells of the rows of all tables of a page, without headers.
func tableRows(page string) (rows [][]string) {
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		rows = append(rows, cells)
	}
	return rows
}

func readAssumptions(t *testing.T, page string) (all []assumption) {
	t.Helper()
	const columns = 7
	for _, c := range tableRows(page) {
		if !assumptionID.MatchString(c[0]) {
			continue
		}
		if len(c) != columns || slices.Contains(c, "") {
			t.Errorf("%s has %d cells, want %d that are not empty", c[0], len(c), columns)
			continue
		}
		all = append(all, assumption{c[0], c[1], c[2], c[3], c[4], c[5], c[6]})
	}
	return all
}

// Code that a row names exists, and IDs identify a row forever.
func TestAWSAssumptions_rows_haveAscendingIDsAndExistingFiles(t *testing.T) {
	t.Parallel()
	all := readAssumptions(t, readPage(t, assumptionsPage))
	if len(all) < leastAssumptions {
		t.Errorf("the page has %d assumptions, want at least %d", len(all), leastAssumptions)
	}
	last, texts := 0, map[string]string{}
	for _, a := range all {
		n, err := strconv.Atoi(a.id[1:])
		if err != nil || n <= last {
			t.Errorf("%s follows A%d: IDs must be unique and ascending (%v)", a.id, last, err)
		}
		last = n
		if same := texts[a.text]; same != "" {
			t.Errorf("%s repeats the text of %s", a.id, same)
		}
		texts[a.text] = a.id
		file := strings.Trim(a.file, "`")
		if info, err := os.Stat(filepath.Join("../..", file)); err != nil || info.IsDir() || file == a.file {
			t.Errorf("%s: %s is not a file of the repository in backquotes: %v", a.id, a.file, err)
		}
		if !shownBy.MatchString(a.clouds) {
			t.Errorf("%s: clouds %q, want none or letters of DLMS in this order", a.id, a.clouds)
		}
		if !accountCheck.MatchString(a.check) {
			t.Errorf("%s: check %q, want none, `doctor`, or a name such as sqs-dedup or (sqs-dedup)", a.id, a.check)
		}
	}
}

// Each document has a URL of AWS and a date, and each row names a document or that there is none.
func TestAWSAssumptions_documents_haveURLsAndDates(t *testing.T) {
	t.Parallel()
	page := readPage(t, assumptionsPage)
	defined := map[string]bool{}
	for _, m := range documentURL.FindAllStringSubmatch(page, -1) {
		if defined[m[1]] {
			t.Errorf("D%s has two URLs", m[1])
		}
		defined[m[1]] = true
		to, err := url.Parse(m[2])
		if err != nil || to.Scheme != "https" || !slices.Contains(hostsOfAWS, to.Host) || to.Path == "" {
			t.Errorf("D%s: %s is not a URL of AWS (%v)", m[1], m[2], err)
		}
	}
	used, dated := map[string]bool{}, readDates(t, page)
	for _, a := range readAssumptions(t, page) {
		named := documentOfAWS.FindAllStringSubmatch(a.document, -1)
		if len(named) == 0 && a.document != "not found" {
			t.Errorf("%s: document %q, want one such as [D1], or not found", a.id, a.document)
		}
		for _, m := range named {
			if used[m[1]] = true; !defined[m[1]] {
				t.Errorf("%s: D%s has no URL", a.id, m[1])
			}
		}
	}
	for n := range defined {
		if !used[n] || !dated(n) {
			t.Errorf("D%s: used %v, has a date %v, want both", n, used[n], dated(n))
		}
	}
}

// readDates returns a function that reports whether the table of documents has a date for a document.
func readDates(t *testing.T, page string) func(number string) bool {
	t.Helper()
	const document, date = 0, 2
	dated := map[int]bool{}
	for _, c := range tableRows(page) {
		m := documentsOfRow.FindStringSubmatch(c[document])
		if m == nil {
			continue
		}
		if at, err := time.Parse(time.DateOnly, c[date]); err != nil || at.IsZero() {
			t.Errorf("documents %s: date %q: %v", c[document], c[date], err)
		}
		from, _ := strconv.Atoi(m[1]) // the expression admits only digits
		to, _ := strconv.Atoi(m[3])
		dated[from] = true
		if m[3] != "" {
			dated[to] = true
		}
		for n := from; m[2] == " to " && n <= to; n++ {
			dated[n] = true
		}
	}
	return func(number string) bool {
		n, err := strconv.Atoi(number)
		return err == nil && dated[n]
	}
}
