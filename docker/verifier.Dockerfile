# The verifier: the program, and the pinned MaxText, JAX and libtpu that it puts plans before. 3 GB; needs PyPI to build.
# Build from the top of the checkout, after the program's own image:
#   docker build -f docker/Dockerfile -t tpu-advisor:local .
#   docker build -f docker/verifier.Dockerfile -t tpu-advisor-verifier:local .
# PYTHON has the Python of server/verifier/versions.json, on the Debian release that the program was built on.
ARG ADVISOR=tpu-advisor:local
ARG PYTHON=python:3.12-slim-bookworm

FROM ${ADVISOR} AS advisor

FROM ${PYTHON}
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libjansson4 libmicrohttpd12 libpq5 libssl3 libyaml-0-2 zlib1g \
    && rm -rf /var/lib/apt/lists/*
COPY --from=advisor /usr/local/bin/tpu-advisor /usr/local/bin/tpu-advisor
# pip trusts whom the base image trusts, the certificate of a proxy included.
ENV TPU_ADVISOR_COMPILE_ENV=/opt/tpu-advisor-compile HOME=/tmp PIP_NO_CACHE_DIR=1 \
    PIP_CERT=/etc/ssl/certs/ca-certificates.crt
RUN /usr/local/bin/tpu-advisor verify --install
LABEL org.opencontainers.image.title="tpu-advisor-verifier" \
      org.opencontainers.image.description="Puts training plans before the real MaxText and libtpu, without a TPU"
USER 10001:10001
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/tpu-advisor"]
CMD ["verifier"]
