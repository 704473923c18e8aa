# A container image with the Debian packages installed:
#   docker build -t svc .
#   docker run -p 127.0.0.1:8080:8080 -v svc:/var/lib/svc svc
# `make package` passes the packages that it has built already (--build-context packages=target/package).
ARG DEBIAN=bookworm

FROM rust:1.95-${DEBIAN} AS build
WORKDIR /src
COPY . .
RUN scripts/setup --package && scripts/fetch-model && scripts/package

FROM scratch AS packages
COPY --from=build /src/target/package/ /

FROM debian:${DEBIAN}-slim
RUN --mount=type=bind,from=packages,target=/packages dpkg -i /packages/svc_*.deb /packages/svc-model_*.deb
USER svc
WORKDIR /var/lib/svc
ENV SVC_DATA_DIR=/var/lib/svc SVC_LISTEN=0.0.0.0:8080
VOLUME /var/lib/svc
EXPOSE 8080
ENTRYPOINT ["svc"]
CMD ["serve"]
