# The program without the embedded store: for `evenhand run` beside an outside Kafka and ClickHouse.
# One binary, no shell, no root. The base image has glibc, because on amd64 the binary loads the
# embedded store's library at run time, without cgo, and is linked to the dynamic loader for that.
FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION=""
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.release=$VERSION" -o /out/evenhand ./cmd/evenhand

FROM gcr.io/distroless/base-nossl-debian12:nonroot
COPY --from=build /out/evenhand /usr/local/bin/evenhand
COPY LICENSE /LICENSE
USER 65532:65532
EXPOSE 8787
ENTRYPOINT ["/usr/local/bin/evenhand"]
CMD ["run"]
