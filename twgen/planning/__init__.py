"""All decisions about versions and traffic, as pure functions without YAML, clocks or servers."""
