# The service in a container, on CPUs: as another user than root, with nothing to write to but /tmp.
#
#   docker build -t regard --build-arg TORCH_INDEX=… .
#   docker run --rm --read-only --tmpfs /tmp -p 5000:5000 -e REGARD_TOKEN -v "$PWD/runs:/runs:ro" regard
ARG BASE=python:3.11-slim
FROM ${BASE} AS build
RUN apt-get update && apt-get install --yes --no-install-recommends binutils
ARG TORCH=2.13.0
ARG TORCH_INDEX=
RUN python3 -m venv /opt/regard
ENV PATH=/opt/regard/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# torch comes from the index that suits the machine: pip's usual one has it with CUDA, which makes the image several times
# larger, PyTorch's index of CPU builds (TORCH_INDEX) without. All else is pinned by hash
RUN pip install ${TORCH_INDEX:+--index-url ${TORCH_INDEX}} torch==${TORCH}
COPY constraints.lock /src/
RUN pip install --no-deps --require-hashes -r /src/constraints.lock
COPY pyproject.toml README.md LICENSE /src/
COPY src /src/src
RUN pip install --no-deps /src
# what it needs to run, and no more
COPY deploy/slim.py /src/deploy/
RUN python3 /src/deploy/slim.py /opt/regard /image

FROM scratch
COPY --from=build /image /
ENV PATH=/opt/regard/bin
# it works, and modules that it loads are kept compiled, so that it starts in half the time
RUN ["python3", "-c", "import regard, regard.cli.serve, regard.serve.app, regard.serve.server; \
  print(regard.load('demo').translate('The cat sleeps.').text)"]
# the interpreter writes no .pyc files from now on, and what is made of a run on use goes below /tmp
ENV PYTHONDONTWRITEBYTECODE=1 XDG_CACHE_HOME=/tmp/cache HOME=/tmp
USER 10001:10001
EXPOSE 5000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
  CMD ["python3", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:5000/health', timeout=2)"]
ENTRYPOINT ["regard"]
CMD ["serve", "--runs", "/runs", "--host", "0.0.0.0", "serve.read_only=true"]
