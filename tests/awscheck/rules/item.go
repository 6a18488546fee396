package rules

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// Limits of DynamoDB, from "Quotas in Amazon DynamoDB".
const (
	mostItemBytes         = 400 << 10
	mostPartitionKeyBytes = 2048
	mostSortKeyBytes      = 1024
	mostNesting           = 32
	mostDigits            = 38
	largestMagnitude      = 125
	smallestMagnitude     = -130
)

// Overheads of values in bytes.
const (
	containerBytes = 3
	memberBytes    = 1
)

const emptyValue = "the value has none of the types S, N, B, BOOL, NULL, SS, NS, BS, L and M"

// checkItem checks the values of an item, and returns its size in bytes.
func checkItem(r *report, path string, item fields) (size int) {
	for name, value := range item {
		if name == "" {
			r.addf(path, "an attribute name is empty")
		}
		size += len(name) + checkValue(r, join(path, name), value, 1)
	}
	return size
}

// checkValue checks a value, and returns its size in bytes.
func checkValue(r *report, path string, value any, depth int) int {
	typed, _ := value.(fields)
	if len(typed) != 1 {
		r.addf(path, "the value has %d types, want 1", len(typed))
		return 0
	}
	if depth > mostNesting {
		r.addf(path, "the value is nested deeper than %d levels", mostNesting)
		return 0
	}
	for kind, v := range typed {
		if v == nil {
			break
		}
		switch kind {
		case "S":
			return len(text(typed, kind))
		case "N":
			return checkNumber(r, path, text(typed, kind))
		case "B":
			return blobBytes(text(typed, kind))
		case "BOOL", "NULL":
			if kind == "NULL" && v != true {
				r.addf(path, "NULL is not true")
			}
			return 1
		case "SS", "NS", "BS":
			return checkSet(r, path, kind, typed)
		case "L":
			return checkList(r, path, v, depth)
		case "M":
			return checkMap(r, path, v, depth)
		}
	}
	r.addf(path, emptyValue)
	return 0
}

func checkList(r *report, path string, value any, depth int) int {
	list, _ := value.([]any)
	size := containerBytes + memberBytes*len(list)
	for i, v := range list {
		size += checkValue(r, path+"["+strconv.Itoa(i)+"]", v, depth+1)
	}
	return size
}

func checkMap(r *report, path string, value any, depth int) int {
	members, _ := value.(fields)
	size := containerBytes + memberBytes*len(members)
	for name, v := range members {
		size += len(name) + checkValue(r, join(path, name), v, depth+1)
	}
	return size
}

func checkSet(r *report, path, kind string, typed fields) (size int) {
	set, _ := typed[kind].([]any)
	if len(set) == 0 {
		r.addf(path, "the set is empty")
	}
	seen := map[string]bool{}
	for _, member := range set {
		value, _ := member.(string)
		id := value
		if n, ok := decimalOf(value); ok && kind == "NS" {
			id = fmt.Sprint(n) // 1 and 1.0 are equal
		}
		if seen[id] {
			r.addf(path, "the set has a value twice")
		}
		seen[id] = true
		switch kind {
		case "NS":
			size += checkNumber(r, path, value)
		case "BS":
			size += blobBytes(value)
		default:
			size += len(value)
		}
	}
	return size
}

func blobBytes(encoded string) int {
	return base64.StdEncoding.DecodedLen(len(encoded)) - strings.Count(encoded, "=")
}

// decimal is a number. The digits have no zeros at their ends, and zero has no digits.
type decimal struct {
	negative  bool
	digits    string
	magnitude int // of the first digit
}

// decimalOf decodes a number with an optional sign, fraction and exponent.
func decimalOf(number string) (d decimal, ok bool) {
	unsigned, negative := strings.CutPrefix(number, "-")
	if !negative {
		unsigned = strings.TrimPrefix(number, "+")
	}
	mantissa, exponent, hasExponent := strings.Cut(strings.ToUpper(unsigned), "E")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	shift, err := strconv.Atoi(exponent)
	all := whole + fraction
	if strings.Trim(all, "0123456789") != "" || all == "" || hasExponent && err != nil {
		return decimal{}, false
	}
	significant := strings.TrimLeft(all, "0")
	if significant == "" {
		return decimal{}, true
	}
	magnitude := shift + len(whole) - 1 - (len(all) - len(significant))
	return decimal{negative, strings.TrimRight(significant, "0"), magnitude}, true
}

// checkNumber checks a number, and returns its size: a byte for two digits, and one more byte.
func checkNumber(r *report, path, number string) int {
	d, ok := decimalOf(number)
	switch {
	case !ok:
		r.addf(path, "%q is not a number", number)
		return 1
	case len(d.digits) > mostDigits:
		r.addf(path, "the number has %d digits, want at most %d", len(d.digits), mostDigits)
	case d.magnitude > largestMagnitude || d.magnitude < smallestMagnitude:
		r.addf(path, "the number has the magnitude %d, want %d to %d", d.magnitude, smallestMagnitude, largestMagnitude)
	}
	return (len(d.digits)+1)/2 + 1
}

// checkKeys checks the key attributes that an item has.
func checkKeys(r *report, path string, item fields, k Keys) {
	for name, most := range map[string]int{k.Partition: mostPartitionKeyBytes, k.Sort: mostSortKeyBytes} {
		typed, ok := item[name].(fields)
		if !ok || name == "" {
			continue
		}
		want := k.Types[name]
		if _, has := typed[want]; !has {
			r.addf(join(path, name), "a key attribute has another type than %s", want)
			continue
		}
		value := text(typed, want)
		size := len(value)
		if want == "B" {
			size = blobBytes(value)
		}
		if size == 0 {
			r.addf(join(path, name), "a key attribute is empty")
		}
		if size > most {
			r.addf(join(path, name), "a key attribute has %d bytes, want at most %d", size, most)
		}
	}
}
