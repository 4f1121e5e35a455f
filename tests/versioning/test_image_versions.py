import pytest

from twgen.versioning.build_ids import image_version

_SHA256 = "ab12" * 16


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("hello", "hello"),
        ("hello:v1", "v1"),
        ("team/hello", "hello"),
        ("reg.example.com/team/hello", "team/hello"),
        ("localhost:5000/hello:2.0", "2.0"),
        ("localhost:5000/hello", "hello"),
        ("localhost:5000", "5000"),
        ("[fe80::1]:5000/a/b_c", "a/b_c"),
        ("REG.example.com/hello", "hello"),
        (f"hello@sha256:{_SHA256}", _SHA256),
        (f"hello:v9@sha256:{_SHA256}", "v9"),
        ("hello:_under", "_under"),
    ],
)
def test_version_of_an_image_is_its_tag_or_digest_or_path(image: str, version: str) -> None:
    assert image_version(image) == version


@pytest.mark.parametrize(
    "image",
    [
        "NOT A VALID image!!",
        "Hello",
        "hello:",
        "hello:v1\n",
        f"hello:{'t' * 129}",
        f"reg/{'p' * 256}",
        f"hello@sha256:{_SHA256.upper()}",
        f"hello@sha256:{_SHA256}ab",
        f"hello:v1@md5:{'a' * 32}",
        "hëllo:v1",
    ],
)
def test_text_that_is_no_image_reference_stays(image: str) -> None:
    assert image_version(image) == image
