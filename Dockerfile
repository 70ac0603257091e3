# dpviz in a container: slim, not root, fit for a read-only root file system.
#   docker build -t dpviz .
#   docker run --rm --read-only --tmpfs /tmp -v dpviz-ledgers:/var/lib/dpviz/ledgers \
#     -p 127.0.0.1:8501:8501 dpviz
# docs/deploy.md says the rest. tests/unit/test_deploy.py keeps these rules.

FROM python:3.13-slim AS build
WORKDIR /build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/dpviz
COPY requirements.lock ./
RUN /opt/dpviz/bin/pip install --require-hashes -r requirements.lock

FROM python:3.13-slim
RUN useradd --system --uid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin dpviz
COPY --from=build /opt/dpviz /opt/dpviz
WORKDIR /srv/dpviz
COPY app.py LICENSE ./
COPY .streamlit/config.toml .streamlit/config.toml
COPY data data
COPY pages pages
COPY dpviz dpviz
# Else every start compiles it all while the first visitor waits.
RUN /opt/dpviz/bin/python -m compileall -q dpviz pages
# Ledgers outlive the container where a volume is mounted here, and are refused where none is.
RUN install -d -o 10001 -m 700 /var/lib/dpviz/ledgers
# Numbers depend on one BLAS thread a process. Nothing is written beside the source; what is kept
# (results of experiments, uploads above a few megabytes on their way) goes to /tmp.
ENV PATH=/opt/dpviz/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    OPENBLAS_NUM_THREADS=1 \
    OMP_NUM_THREADS=1 \
    DPVIZ_LEDGERS=/var/lib/dpviz/ledgers \
    HOME=/tmp \
    XDG_CACHE_HOME=/tmp/cache \
    STREAMLIT_SERVER_ADDRESS=0.0.0.0 \
    STREAMLIT_SERVER_PORT=8501 \
    STREAMLIT_SERVER_HEADLESS=true
USER 10001
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=40s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; base = os.environ.get('STREAMLIT_SERVER_BASE_URL_PATH', '').strip('/'); u.urlopen('http://127.0.0.1:' + os.environ['STREAMLIT_SERVER_PORT'] + ('/' + base if base else '') + '/_stcore/health', timeout=4)"]
CMD ["python", "-m", "dpviz", "app", "--headless"]
