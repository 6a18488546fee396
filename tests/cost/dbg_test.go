package cost_test
