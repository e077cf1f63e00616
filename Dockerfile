# treedot with its optional readers, all code compiled. The default command writes the tour to /out:
#   docker build --tag treedot .
#   docker run --rm --volume "$PWD/demo:/out" treedot
# Compiled code fits the kind of processor that built the image. On another kind, functions are compiled again
# when they are first called.
FROM python:3.13-slim

COPY . /treedot
RUN pip install --no-cache-dir "/treedot[all]" \
    && rm -r /treedot \
    && useradd --create-home --uid 1000 treedot \
    && install --directory --owner treedot /out

USER 1000
WORKDIR /home/treedot
ENV NUMBA_CACHE_DIR=/home/treedot/.cache/numba
RUN treedot compile

CMD ["treedot", "demo", "--out", "/out"]
