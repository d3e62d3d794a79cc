// The rows of src/evaluate/abi.rs: the same bytes.
