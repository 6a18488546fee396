package simaws

import (
	"math/big"
	"strconv"
	"strings"
)

// Limits of a DynamoDB number: digits of precision, and the largest and smallest magnitude as powers of ten.
const (
	maxDigits   = 38
	maxExponent = 126
	minExponent = -129
)

// decimal is a DynamoDB number: 0.digits times ten to the exponent, without zeros at either end. Zero has no digits.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// parseDecimal parses a number with the precision and the range of DynamoDB.
func parseDecimal(s string) (decimal, error) {
	d := decimal{}
	mantissa, exponent, hasExponent := s, "", false

	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent, hasExponent = s[:i], s[i+1:], true
	}

	if mantissa != "" && (mantissa[0] == '-' || mantissa[0] == '+') {
		d.negative = mantissa[0] == '-'
		mantissa = mantissa[1:]
	}

	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction

	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return decimal{}, invalid("The parameter cannot be converted to a numeric value: %s", s)
	}

	if hasExponent {
		e, err := strconv.Atoi(exponent)
		if err != nil {
			return decimal{}, invalid("The parameter cannot be converted to a numeric value: %s", s)
		}

		d.exponent = e
	}

	d.exponent += len(whole)

	return d.normal(digits)
}

// normal removes the zeros at both ends of the digits and checks the range.
func (d decimal) normal(digits string) (decimal, error) {
	significant := strings.TrimLeft(digits, "0")
	d.exponent -= len(digits) - len(significant)
	d.digits = strings.TrimRight(significant, "0")

	switch {
	case d.digits == "":
		return decimal{}, nil
	case len(d.digits) > maxDigits:
		return decimal{}, invalid("Attempting to store more than 38 significant digits in a Number")
	case d.exponent > maxExponent:
		return decimal{}, invalid(
			"Number overflow. Attempting to store a number with magnitude larger than supported range")
	case d.exponent < minExponent:
		return decimal{}, invalid(
			"Number underflow. Attempting to store a number with magnitude smaller than supported range")
	}

	return d, nil
}

// String formats the number without an exponent, like DynamoDB.
func (d decimal) String() string {
	if d.digits == "" {
		return "0"
	}

	sign := ""
	if d.negative {
		sign = "-"
	}

	switch {
	case d.exponent <= 0:
		return sign + "0." + strings.Repeat("0", -d.exponent) + d.digits
	case d.exponent >= len(d.digits):
		return sign + d.digits + strings.Repeat("0", d.exponent-len(d.digits))
	default:
		return sign + d.digits[:d.exponent] + "." + d.digits[d.exponent:]
	}
}

// sortable formats the number so that the texts sort like the numbers.
func (d decimal) sortable() string {
	if d.digits == "" {
		return "1"
	}

	const bias = 500

	text := strconv.Itoa(d.exponent+bias) + d.digits
	if !d.negative {
		return "2" + text
	}

	mirrored := []byte(text)
	for i, digit := range mirrored {
		mirrored[i] = '0' + '9' - digit
	}

	return "0" + string(mirrored) + "~"
}

// smallInt is the fast path for most numbers: plain integers without leading zeros whose sum fits int64.
func smallInt(s string) (int64, bool) {
	const room = 18

	digits := strings.TrimPrefix(s, "-")
	if digits == "" || len(digits) > room || (digits[0] == '0' && s != "0") || digits[0] == '+' {
		return 0, false
	}

	n, err := strconv.ParseInt(s, 10, 64)

	return n, err == nil
}

// canonical returns the stored form of a number.
func canonical(s string) (string, error) {
	if _, ok := smallInt(s); ok {
		return s, nil
	}

	d, err := parseDecimal(s)
	if err != nil {
		return "", err
	}

	return d.String(), nil
}

// sortableNumber returns the sortable text of a valid number.
func sortableNumber(s string) string {
	d, err := parseDecimal(s)
	if err != nil {
		return ""
	}

	return d.sortable()
}

// compareNumbers compares two valid numbers.
func compareNumbers(a, b string) int {
	x, okX := smallInt(a)
	y, okY := smallInt(b)

	if okX && okY {
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}

		return 0
	}

	return strings.Compare(sortableNumber(a), sortableNumber(b))
}

// addNumbers returns a + b, or a - b.
func addNumbers(a, b string, minus bool) (string, error) {
	x, okX := smallInt(a)
	y, okY := smallInt(b)

	if okX && okY {
		if minus {
			y = -y
		}

		return strconv.FormatInt(x+y, 10), nil
	}

	dx, err := parseDecimal(a)
	if err != nil {
		return "", err
	}

	dy, err := parseDecimal(b)
	if err != nil {
		return "", err
	}

	if minus {
		dy.negative = !dy.negative
	}

	return addDecimals(dx, dy)
}

// addDecimals adds two decimals exactly, at the smaller of both scales.
func addDecimals(x, y decimal) (string, error) {
	scale := min(x.exponent-len(x.digits), y.exponent-len(y.digits))
	sum := new(big.Int).Add(x.integer(scale), y.integer(scale))

	d := decimal{negative: sum.Sign() < 0}
	digits := new(big.Int).Abs(sum).String()
	d.exponent = scale + len(digits)

	d, err := d.normal(digits)
	if err != nil {
		return "", err
	}

	return d.String(), nil
}

// integer returns the number in units of ten to the scale.
func (d decimal) integer(scale int) *big.Int {
	n, _ := new(big.Int).SetString("0"+d.digits, 10)
	shift := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(d.exponent-len(d.digits)-scale)), nil)
	n.Mul(n, shift)

	if d.negative {
		n.Neg(n)
	}

	return n
}
