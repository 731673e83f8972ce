# Seaway as an image, for the chart in deploy/helm or on its own; docs/deploy.md says how it is built and run.
#
#   script/release --dry-run --keep          (writes the wheel and the hashes of its dependencies to dist)
#   docker build --build-arg BASE=python:3.11-slim@sha256:... --tag seaway:0.1.0 .        (or podman build, or buildah build)

# Any image of Debian or Ubuntu with the module venv of Python 3.11 to 3.13 will do; 3.11 is what Seaway is tested on. It has no
# default and needs a digest, because a tag can change. contributing/release.md says how to find the digest.
ARG BASE

FROM ${BASE} AS build
ARG BASE
RUN printf %s "$BASE" | grep -Eq '@sha256:[0-9a-f]{64}$' \
    || { echo "BASE=$BASE has no digest: give --build-arg BASE=NAME@sha256:DIGEST, see contributing/release.md" >&2; exit 1; }
WORKDIR /build
COPY dist dist
RUN python3 -m venv /opt/seaway \
    && /opt/seaway/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r dist/requirements.txt \
    && /opt/seaway/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --no-index dist/seaway-*.whl
COPY deploy/image/healthy.py /opt/seaway/
# Compiled for every processor of the architecture, so that no server compiles at its start.
ENV NUMBA_CPU_NAME=generic
RUN SEAWAY_CACHE=/opt/seaway/compiled /opt/seaway/bin/seaway compile --all

FROM ${BASE}
COPY --from=build /opt/seaway /opt/seaway
# The account that the chart runs it as, and the two folders that it writes to.
RUN groupadd --gid 10001 seaway \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/seaway --shell /usr/sbin/nologin seaway \
    && install -d -o 10001 -g 10001 -m 0700 /var/lib/seaway /var/cache/seaway
ENV PATH=/opt/seaway/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    NUMBA_CPU_NAME=generic \
    SEAWAY_CACHE=/var/cache/seaway \
    SEAWAY_COMPILED=/opt/seaway/compiled \
    SEAWAY_DATA=/var/lib/seaway
USER 10001:10001
WORKDIR /var/lib/seaway
VOLUME /var/lib/seaway
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=1m --retries=6 \
    CMD ["/opt/seaway/bin/python", "/opt/seaway/healthy.py"]
ENTRYPOINT ["seaway"]
CMD ["up", "--host", "0.0.0.0"]
