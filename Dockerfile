# The sidecar of Argo CD's plugin and the Job of a rollout: `docker build -t twgen .`
# BASE is a Debian, with a Python or without. For a package index or a CA of your own, which stay out of the image:
# `--secret id=pip,src=pip.conf --secret id=ca,src=ca.pem`
ARG BASE=default

# A tag, since its digest cannot be looked up where this file is tested. A release resolves it, builds on the digest
# and records that as the label org.opencontainers.image.base.digest. Dependabot raises what a FROM line names.
FROM python:3.13-slim AS default

FROM ${BASE} AS base
RUN set -eu; \
    apt-get update -qq; \
    command -v python3 || missing=python3; \
    apt-get install -qq --no-install-recommends ca-certificates ${missing:-}; \
    rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/*

FROM base AS build
RUN set -eu; \
    apt-get update -qq; \
    python3 -c 'import ensurepip' 2> /dev/null || missing=python3-venv; \
    apt-get install -qq --no-install-recommends git ${missing:-}
WORKDIR /build
COPY requirements.lock tools/locked.py ./
# left out: Rust sources, types and whole packages that twgen never imports
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca,target=/run/ca.pem set -eu; \
    if [ -s /run/ca.pem ]; then export PIP_CERT=/run/ca.pem; fi; \
    export PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1; \
    python3 -m venv venv; \
    python3 -m venv --without-pip /opt/twgen; \
    python3 locked.py requirements.lock hatchling hatch-fancy-pypi-readme > build.lock; \
    python3 locked.py requirements.lock twgen > runtime.lock; \
    venv/bin/pip install --require-hashes -r build.lock; \
    venv/bin/pip --python /opt/twgen/bin/python install --no-compile --require-hashes -r runtime.lock; \
    venv/bin/pip --python /opt/twgen/bin/python uninstall --yes --quiet \
        markdown-it-py mdurl pygments types-protobuf \
        aiohappyeyeballs aiohttp aiohttp-retry aiosignal frozenlist multidict propcache yarl; \
    cd /opt/twgen/lib/python3*/site-packages; \
    rm -r kubernetes/aio kubernetes/client/api temporalio/bridge/sdk-core temporalio/contrib; \
    find . -name '*.pyi' -delete; \
    find kubernetes/client/models -name 'v*.py' -delete; \
    find . -depth -type d -name tests -exec rm -r {} +
COPY . .
ARG REVISION
RUN set -eu; \
    export TWGEN_REVISION="${REVISION:-}"; \
    venv/bin/pip wheel --no-deps --no-build-isolation --no-index --wheel-dir dist .; \
    venv/bin/pip --python /opt/twgen/bin/python install --no-deps --no-index --no-compile dist/*.whl; \
    python3 -m compileall -q --invalidation-mode unchecked-hash /opt/twgen

FROM base
# of git only the one program that reads a repository: the package would bring Perl, and the ways to other machines
COPY --from=build /usr/bin/git /usr/bin/git
COPY --from=build /opt/twgen /opt/twgen
COPY plugin.yaml /home/argocd/cmp-server/config/plugin.yaml
# a base may bring a pip, which nobody needs here, and leave the standard library uncompiled, which a read-only root
# would do anew at every start
RUN set -eu; \
    if python3 -m pip --version 2> /dev/null; then python3 -m pip uninstall --yes --quiet pip; fi; \
    ln -s /opt/twgen/bin/twgen /usr/local/bin/twgen; \
    git --version; \
    echo 'argocd:x:999:999::/home/argocd:/usr/sbin/nologin' >> /etc/passwd; \
    echo 'argocd:x:999:' >> /etc/group; \
    find / -xdev -type f -perm /6000 -exec chmod a-s {} +; \
    library=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))'); \
    rm -rf "$library/ensurepip" "$library/idlelib" "$library/lib2to3" "$library/turtledemo" "$library/test"; \
    python3 -m compileall -q -x '/site-packages/' "$library"
ARG VERSION REVISION
LABEL org.opencontainers.image.title="twgen" \
      org.opencontainers.image.description="GitOps manifests for Temporal workers: Argo CD plugin and rollout Job" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV HOME=/home/argocd
WORKDIR /home/argocd
USER 999:999
ENTRYPOINT ["twgen"]
