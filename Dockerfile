# The README's quick start on a bare Debian 12:
#   docker build -t fedbench .
#   docker run --rm fedbench                                   # make table1
#   docker run --rm -v "$PWD/results:/fedbench/results" -v "$PWD/tables:/fedbench/tables" fedbench snakemake tables/climb/table2.md
FROM debian:12
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3 python3-venv make git ca-certificates \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /fedbench
COPY . .
RUN make setup
ENV PATH=/fedbench/.venv/bin:$PATH
CMD ["make", "table1"]
