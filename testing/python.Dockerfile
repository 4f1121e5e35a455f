# The Python of Debian with all that the fast tests need; the checkout is mounted over /twgen.
ARG BASE
FROM ${BASE}
RUN set -eu; \
    apt-get update -qq; \
    apt-get install -qq --no-install-recommends ca-certificates git python3-venv; \
    rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/*
COPY . /twgen
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca,target=/run/ca.pem set -eu; \
    if [ -s /run/ca.pem ]; then export PIP_CERT=/run/ca.pem; fi; \
    export PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1; \
    python3 -m venv /venv; \
    /venv/bin/pip install --quiet --require-hashes -r /twgen/requirements.lock; \
    /venv/bin/pip install --quiet --no-deps --no-build-isolation --no-index -e /twgen
ENV HOME=/tmp PATH=/venv/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
WORKDIR /twgen
USER 0:0
