package rules

import (
	"encoding/base64"
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
		if seen[value] {
			r.addf(path, "the set has a value twice")
		}
		seen[value] = true
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

// checkNumber checks a number, and returns its size: a byte for two digits, and one more byte.
func checkNumber(r *report, path, number string) int {
	mantissa, exponent, _ := strings.Cut(strings.ToUpper(strings.TrimLeft(number, "+-")), "E")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	shift, err := strconv.Atoi(exponent)
	all := whole + fraction
	if strings.Trim(all, "0123456789") != "" || all == "" || exponent != "" && err != nil {
		r.addf(path, "%q is not a number", number)
		return 1
	}
	significant := strings.TrimLeft(all, "0")
	magnitude := shift + len(whole) - 1 - (len(all) - len(significant))
	significant = strings.TrimRight(significant, "0")
	switch {
	case significant == "":
	case len(significant) > mostDigits:
		r.addf(path, "the number has %d digits, want at most %d", len(significant), mostDigits)
	case magnitude > largestMagnitude || magnitude < smallestMagnitude:
		r.addf(path, "the number has the magnitude %d, want %d to %d", magnitude, smallestMagnitude, largestMagnitude)
	}
	return (len(significant)+1)/2 + 1
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
