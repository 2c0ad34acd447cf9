# An image of `secant serve`. Build: docker build -t secant .  Run:
#   docker run --read-only --tmpfs /tmp -v /srv/secant:/data -p 127.0.0.1:8080:8080 \
#     -e SECANT_SERVE_HTTP__ORIGIN=https://secant.example secant
# /data holds policy.toml, the data or their address, the ledger and the users. TLS is ended by a proxy in front.
FROM python:3.11-slim AS build
WORKDIR /build
COPY requirements/dev.lock requirements/
COPY pyproject.toml README.md LICENSE ./
COPY src src
# The lock file keeps versions and hashes; what only tests need is left behind with this stage.
RUN python -m venv /opt/secant \
 && /opt/secant/bin/pip install --no-cache-dir hatchling==1.33.0 \
 && grep -v "^ *--hash" requirements/dev.lock | sed 's/ \\$//' > constraints.txt \
 && /opt/secant/bin/pip install --no-cache-dir -c constraints.txt ".[serve,postgres,frames,shadow]"

FROM python:3.11-slim
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin secant \
 && mkdir /data && chown secant /data
COPY --from=build /opt/secant /opt/secant
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
ENV PATH=/opt/secant/bin:$PATH \
    SECANT_SERVE_POLICY=/data/policy.toml \
    SECANT_SERVE_HTTP__HOST=0.0.0.0 \
    SECANT_SERVE_HTTP__PORT=8080 \
    SECANT_SERVE_HTTP__BEHIND_PROXY=true
STOPSIGNAL SIGTERM
HEALTHCHECK CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/readyz', timeout=5)"]
CMD ["secant", "serve"]
